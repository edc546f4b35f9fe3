// Package exchange turns stored runs into the formats other programs read (CSV,
// JSON lines, llama-bench's rows, the Go benchmark format, Parquet) and reads
// llama-bench's rows. It knows no SQL and opens no database: the ledger hands it
// values. What is private is not in those values unless the caller asked for it.
package exchange
