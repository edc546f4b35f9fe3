package results

import (
	"database/sql"

	sqlite "github.com/mattn/go-sqlite3"
)

// driverName is SQLite with our own functions; see register.
const driverName = "bmoe-sqlite3"

func init() {
	sql.Register(driverName, &sqlite.SQLiteDriver{ConnectHook: func(c *sqlite.SQLiteConn) error {
		return c.RegisterFunc("bmoe_fault", rowFault, true)
	}})
}
