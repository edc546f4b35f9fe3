// Reads SQL from standard input, runs its statements in order with DuckDB and
// prints the rows of the last as JSON. The argument is the folder of packages.
const { createRequire } = require('module');
const path = require('path');

async function main() {
  const load = createRequire(path.join(process.argv[2], 'package.json'));
  const { DuckDBInstance } = load('@duckdb/node-api');
  let sql = '';
  for await (const part of process.stdin) sql += part;
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  let rows = [];
  for (const statement of sql.split(/;\s*(?:\n|$)/).filter((s) => s.trim())) {
    const reader = await connection.runAndReadAll(statement);
    rows = reader.getRowObjectsJson();
  }
  process.stdout.write(JSON.stringify(rows));
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
