package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// entity says how the rows of a table are named and what their bodies hold.
type entity struct {
	table   string
	key     string     // primary key
	content string     // the column that a second copy must agree on
	extra   string     // a further column to copy, whose sha256 the body holds
	sealed  bool       // the key is the sha256 of the body
	private bool       // left out of shared copies
	target  func() any // what a body decodes into
}

// entities are the shared tables, in an order that satisfies foreign keys.
var entities = []entity{
	{table: "machine", key: "id", content: "body", sealed: true, target: func() any { return &record.Machine{} }},
	{table: "environment", key: "id", content: "body", sealed: true, target: func() any { return &record.Environment{} }},
	{table: "build", key: "id", content: "body", sealed: true, target: func() any { return &record.Build{} }},
	{table: "model", key: "id", content: "body", target: func() any { return &record.Model{} }},
	{table: "config", key: "id", content: "body", sealed: true, target: func() any { return &config.Config{} }},
	{table: "plan", key: "id", content: "body", sealed: true, target: func() any { return &planner.Plan{} }},
	{table: "prediction", key: "id", content: "body", sealed: true, target: func() any { return &record.PredictionBody{} }},
	{table: "experiment", key: "id", content: "body", sealed: true, target: func() any { return &record.Experiment{} }},
	{table: "run", key: "id", content: "body", sealed: true, target: func() any { return &record.RunBody{} }},
	{table: "samples", key: "run_id", content: "data"},
	{table: "tokens", key: "run_id", content: "data", private: true},
	{table: "private", key: "owner_id", content: "body", extra: "kind", private: true, target: func() any { return &record.Private{} }},
	{table: "verdict", key: "id", content: "body", sealed: true, target: func() any { return &record.Verdict{} }},
	{table: "event", key: "id", content: "body", sealed: true, target: func() any { return &record.Event{} }},
	{table: "profile", key: "id", content: "body", sealed: true, target: func() any { return &record.Profile{} }},
	{table: "trace", key: "id", content: "body", extra: "data", sealed: true, private: true, target: func() any { return &traceBody{} }},
	{table: "histogram", key: "id", content: "body", extra: "data", sealed: true, target: func() any { return &histogramBody{} }},
	{table: "fit", key: "id", content: "body", sealed: true, target: func() any { return &record.Fit{} }},
}

func entityOf(table string) (entity, bool) {
	for _, e := range entities {
		if e.table == table {
			return e, true
		}
	}
	return entity{}, false
}

// maxBody bounds what one row may make a reader allocate.
const maxBody = 64 << 20

// rowFault says what is wrong with a row of a table, or "". SQL calls it as
// bmoe_fault(table, key, content).
func rowFault(table, key string, content []byte) string {
	e, ok := entityOf(table)
	switch {
	case !ok:
		return "no such entity"
	case !goodKey(key):
		return "its id is not one"
	case len(content) > maxBody:
		return fmt.Sprintf("%d bytes are more than a row may have", len(content))
	}
	if e.target == nil {
		return columnsFault(table, content)
	}
	if e.sealed {
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != key {
			return "its id is not the sha256 of its body"
		}
	}
	canon, err := record.Canonicalise(content)
	if err != nil || !bytes.Equal(canon, content) {
		return "its body is not canonical JSON"
	}
	target := e.target()
	if err := json.Unmarshal(content, target); err != nil {
		return fmt.Sprintf("its body does not decode: %v", err)
	}
	return numbersFault(target)
}

func columnsFault(table string, blob []byte) string {
	var err error
	if table == "tokens" {
		_, err = record.UnpackTokens(blob)
	} else {
		_, err = record.UnpackSamples(blob)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// blobFault says what is wrong with the blob beside a body, or "". SQL calls it
// as bmoe_blob_fault(table, body, data).
func blobFault(table string, body, data []byte) string {
	var sealed struct {
		SHA string `json:"data_sha256"`
	}
	if err := json.Unmarshal(body, &sealed); err != nil {
		return err.Error()
	}
	raw := data
	var err error
	switch table {
	case "trace":
		raw, err = gunzip(data)
	case "histogram":
		_, err = unpackBins(data)
	default:
		return ""
	}
	if err != nil {
		return err.Error()
	}
	if record.HashID(raw) != sealed.SHA {
		return "its data is not what its body says"
	}
	return ""
}

// numbersFault refuses what no run can have measured and what would poison
// every average it enters.
func numbersFault(target any) string {
	r, ok := target.(*record.RunBody)
	if !ok {
		return ""
	}
	m := &r.Measured
	for _, v := range []float64{m.DecodeSPerToken, m.PrefillTokensPerS, m.TTFTS, m.LoadS, m.HitRate, m.BytesPerToken} {
		if v < 0 || math.IsInf(v, 0) {
			return fmt.Sprintf("it measured %v", v)
		}
	}
	return ""
}

// goodKey accepts ids that cannot be anything else where they are used: in a
// file name, a pattern or a page.
func goodKey(key string) bool {
	if len(key) < 8 || len(key) > 128 {
		return false
	}
	for _, c := range key {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
