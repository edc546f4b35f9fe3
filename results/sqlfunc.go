package results

import (
	"database/sql"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/bmoe/bmoe/results/record"
)

// driverName is SQLite with our own functions; see register.
const driverName = "bmoe-sqlite3"

func init() {
	sql.Register(driverName, &sqlite.SQLiteDriver{ConnectHook: func(c *sqlite.SQLiteConn) error {
		for name, fn := range map[string]any{"bmoe_fault": rowFault, "bmoe_blob_fault": blobFault, "bmoe_sha": record.HashID} {
			if err := c.RegisterFunc(name, fn, true); err != nil {
				return err
			}
		}
		return nil
	}})
}
