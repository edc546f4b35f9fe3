-- Facts, routings and fits; what was merged and imported; pruning; and the
-- entities inside the bodies as tables to read from.

-- What one probe of a machine found, for one model or none.
CREATE TABLE profile (
  id         TEXT PRIMARY KEY NOT NULL,
  body       TEXT NOT NULL CHECK (json_valid(body)),
  machine_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.machine_id') REFERENCES machine (id),
  model_id   TEXT GENERATED ALWAYS AS (body ->> '$.model_id') REFERENCES model (id),
  at         TEXT NOT NULL GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', body ->> '$.at'))
) STRICT;

-- A recorded routing. data is the CSV, gzip; the body holds its sha256.
CREATE TABLE trace (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  data     BLOB NOT NULL,
  model_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.model_id') REFERENCES model (id),
  run_id   TEXT GENERATED ALWAYS AS (body ->> '$.run_id') REFERENCES run (id)
) STRICT;

-- Stack distances of a routing: hit rate at every cache size. data holds the
-- bins, packed; the body holds the sha256 of data.
CREATE TABLE histogram (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  data     BLOB NOT NULL,
  model_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.model_id') REFERENCES model (id),
  run_id   TEXT GENERATED ALWAYS AS (body ->> '$.run_id') REFERENCES run (id)
) STRICT;
CREATE INDEX histogram_model ON histogram (model_id);

-- A hit-rate model fitted by a method of a version. Derived.
CREATE TABLE fit (
  id         TEXT PRIMARY KEY NOT NULL,
  body       TEXT NOT NULL CHECK (json_valid(body)),
  method     TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.method'),
  machine_id TEXT GENERATED ALWAYS AS (body ->> '$.machine_id') REFERENCES machine (id),
  model_id   TEXT GENERATED ALWAYS AS (body ->> '$.model_id') REFERENCES model (id)
) STRICT;

-- What came into this file from others or was pruned from it. Stays here: it is
-- neither merged nor exported.
CREATE TABLE import_log (
  seq      INTEGER PRIMARY KEY,
  at       TEXT NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('merge', 'import', 'prune')),
  source   TEXT NOT NULL,
  inserted INTEGER NOT NULL,
  present  INTEGER NOT NULL,
  detail   TEXT NOT NULL
) STRICT;

-- Holds a row only inside the transaction of `bmoe db prune`: the one way by
-- which an append-only row may leave.
CREATE TABLE prune_gate (open INTEGER NOT NULL CHECK (open = 1)) STRICT;

DROP TRIGGER run_no_delete;
DROP TRIGGER prediction_no_delete;
DROP TRIGGER experiment_no_delete;
DROP TRIGGER event_no_delete;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run WHEN NOT EXISTS (SELECT 1 FROM prune_gate)
BEGIN SELECT RAISE (ABORT, 'runs are append-only'); END;
CREATE TRIGGER prediction_no_delete BEFORE DELETE ON prediction WHEN NOT EXISTS (SELECT 1 FROM prune_gate)
BEGIN SELECT RAISE (ABORT, 'predictions are append-only'); END;
CREATE TRIGGER experiment_no_delete BEFORE DELETE ON experiment WHEN NOT EXISTS (SELECT 1 FROM prune_gate)
BEGIN SELECT RAISE (ABORT, 'experiments are append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event WHEN NOT EXISTS (SELECT 1 FROM prune_gate)
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;

CREATE VIEW arm AS
SELECT e.id AS experiment_id, a.key AS position, a.value ->> '$.name' AS name, a.value ->> '$.value' AS value,
       a.value -> '$.config' AS config
FROM experiment e, json_each(e.body, '$.arms') a;

CREATE VIEW block AS
SELECT e.id AS experiment_id, s.value ->> '$.block' AS block, s.value ->> '$.index' AS slot, s.value ->> '$.pos' AS pos,
       s.value ->> '$.arm' AS arm
FROM experiment e, json_each(e.body, '$.schedule') s;

CREATE VIEW decision AS
SELECT p.id AS plan_id, d.key AS position, d.value ->> '$.knob' AS knob, d.value ->> '$.value' AS value,
       d.value ->> '$.provenance' AS provenance, d.value ->> '$.brief' AS brief, d.value ->> '$.topic' AS topic,
       d.value ->> '$.reason' AS reason
FROM plan p, json_each(p.body, '$.decisions') d;

CREATE VIEW ledger_row AS
SELECT p.id AS plan_id, l.key AS position, l.value ->> '$.row' AS row, l.value ->> '$.bytes' AS bytes,
       l.value ->> '$.ceiling' AS ceiling
FROM plan p, json_each(p.body, '$.ledger') l;

CREATE VIEW estimate AS
SELECT p.id AS prediction_id, p.made_at, m.key AS metric, m.value ->> '$.point' AS point, m.value ->> '$.lo' AS lo,
       m.value ->> '$.hi' AS hi, m.value ->> '$.basis' AS basis
FROM prediction p, json_each(p.body) m
WHERE m.type = 'object' AND m.value ->> '$.known';

CREATE VIEW measurement AS
SELECT r.id AS run_id, r.experiment_id, r.arm, r.started_at, m.key AS metric, m.value AS value
FROM run r, json_each(r.body, '$.measured') m;

CREATE VIEW fact AS
SELECT p.id AS profile_id, p.machine_id, p.model_id, p.at, f.value ->> '$.name' AS name, f.value ->> '$.state' AS state,
       f.value ->> '$.value' AS value, f.value ->> '$.unit' AS unit, f.value ->> '$.spread' AS spread,
       f.value ->> '$.provenance' AS provenance
FROM profile p, json_each(p.body, '$.facts') f;

CREATE VIEW comparison AS
SELECT v.id AS verdict_id, v.experiment_id, v.method, c.value ->> '$.arm' AS arm, c.value ->> '$.baseline' AS baseline,
       c.value ->> '$.pairs' AS pairs, c.value ->> '$.effect' AS effect, c.value ->> '$.lo' AS lo, c.value ->> '$.hi' AS hi,
       c.value ->> '$.level' AS level, c.value ->> '$.verdict' AS verdict
FROM verdict v, json_each(v.body, '$.comparisons') c;

CREATE VIEW void AS
SELECT subject, body ->> '$.why' AS why, at FROM event WHERE kind = 'void';
