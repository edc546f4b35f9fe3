-- The ledger. Every table holds an entity as canonical JSON in body under the
-- sha256 of that JSON; the other columns are read out of the body, so they can
-- never disagree with it. Nothing here is updated: see the triggers.

-- Stable facts only: the same after a reboot and a kernel update.
CREATE TABLE machine (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  os       TEXT GENERATED ALWAYS AS (body ->> '$.os'),
  arch     TEXT GENERATED ALWAYS AS (body ->> '$.arch'),
  cpu      TEXT GENERATED ALWAYS AS (body ->> '$.cpu')
) STRICT;

-- What may differ from run to run on one machine: free memory, load,
-- temperature, page cache.
CREATE TABLE environment (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body))
) STRICT;

-- The program: our commit, llama.cpp's release, the processor module it chose.
CREATE TABLE build (
  id        TEXT PRIMARY KEY NOT NULL,
  body      TEXT NOT NULL CHECK (json_valid(body)),
  commit_id TEXT GENERATED ALWAYS AS (body ->> '$.commit'),
  llama_cpp TEXT GENERATED ALWAYS AS (body ->> '$.llama_cpp')
) STRICT;

-- The id of a model comes from its file: header, tensor table, sampled bytes.
CREATE TABLE model (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  arch     TEXT GENERATED ALWAYS AS (body ->> '$.arch'),
  quant    TEXT GENERATED ALWAYS AS (body ->> '$.quant')
) STRICT;

-- A run's resolved knobs, without paths and prompts.
CREATE TABLE config (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body))
) STRICT;

-- Settings with their reasons (see the views decision and ledger_row).
CREATE TABLE plan (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  regime   TEXT GENERATED ALWAYS AS (body ->> '$.regime')
) STRICT;

-- What a plan expected, with interval, tolerance and falsifier, and when that
-- was written down.
CREATE TABLE prediction (
  id         TEXT PRIMARY KEY NOT NULL,
  body       TEXT NOT NULL CHECK (json_valid(body)),
  plan_id    TEXT GENERATED ALWAYS AS (body ->> '$.plan') REFERENCES plan (id),
  machine_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.machine') REFERENCES machine (id),
  build_id   TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.build') REFERENCES build (id),
  model_id   TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.model') REFERENCES model (id),
  made_at    TEXT NOT NULL GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', body ->> '$.made_at'))
) STRICT;

-- One question, one lever, a design fixed before the first run.
CREATE TABLE experiment (
  id            TEXT PRIMARY KEY NOT NULL,
  body          TEXT NOT NULL CHECK (json_valid(body)),
  lever         TEXT GENERATED ALWAYS AS (body ->> '$.lever'),
  kind          TEXT GENERATED ALWAYS AS (body ->> '$.kind'),
  machine_id    TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.machine.id') REFERENCES machine (id),
  build_id      TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.build.id') REFERENCES build (id),
  model_id      TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.model.id') REFERENCES model (id),
  registered_at TEXT NOT NULL GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', body ->> '$.registered_at'))
) STRICT;
CREATE INDEX experiment_registered ON experiment (registered_at);

-- What was run where with which settings, and what was measured. A run that died
-- is a row too.
CREATE TABLE run (
  id            TEXT PRIMARY KEY NOT NULL,
  body          TEXT NOT NULL CHECK (json_valid(body)),
  experiment_id TEXT GENERATED ALWAYS AS (body ->> '$.experiment') REFERENCES experiment (id),
  arm           TEXT GENERATED ALWAYS AS (body ->> '$.slot.arm'),
  machine_id    TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.machine') REFERENCES machine (id),
  build_id      TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.build') REFERENCES build (id),
  model_id      TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.model') REFERENCES model (id),
  config_id     TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.config') REFERENCES config (id),
  env_before_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.env_before') REFERENCES environment (id),
  env_after_id  TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.env_after') REFERENCES environment (id),
  plan_id       TEXT GENERATED ALWAYS AS (body ->> '$.plan') REFERENCES plan (id),
  prediction_id TEXT GENERATED ALWAYS AS (body ->> '$.prediction') REFERENCES prediction (id),
  state         TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.state'),
  started_at    TEXT NOT NULL GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', body ->> '$.started_at')),
  sample_count  INTEGER NOT NULL GENERATED ALWAYS AS (body ->> '$.sample_count')
) STRICT;
CREATE INDEX run_experiment ON run (experiment_id);
CREATE INDEX run_started ON run (started_at);

-- A run's per-token times, packed (see record.PackSamples). The run's body holds
-- the sha256 of the blob.
CREATE TABLE samples (
  run_id   TEXT PRIMARY KEY NOT NULL REFERENCES run (id),
  data     BLOB NOT NULL
) STRICT;

-- The token ids of a run, packed. They can be read as text, so a shared copy
-- leaves them out. The run's body holds the sha256 of the blob.
CREATE TABLE tokens (
  run_id   TEXT PRIMARY KEY NOT NULL REFERENCES run (id),
  data     BLOB NOT NULL
) STRICT;

-- What may name a person, a path or a host, or quotes a prompt or an answer.
-- It takes no part in any id, so a shared copy may leave it out.
CREATE TABLE private (
  owner_id TEXT PRIMARY KEY NOT NULL, -- run, experiment or prediction
  kind     TEXT NOT NULL CHECK (kind IN ('run', 'experiment', 'prediction')),
  body     TEXT NOT NULL CHECK (json_valid(body))
) STRICT;

-- What a method of a version found in an experiment's runs. Derived.
CREATE TABLE verdict (
  id            TEXT PRIMARY KEY NOT NULL,
  body          TEXT NOT NULL CHECK (json_valid(body)),
  experiment_id TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.experiment_id') REFERENCES experiment (id),
  method        TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.method'),
  inputs        TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.inputs')
) STRICT;
CREATE INDEX verdict_experiment ON verdict (experiment_id);

-- What was said later of a run or an experiment: void, resume, interrupt, note.
CREATE TABLE event (
  id       TEXT PRIMARY KEY NOT NULL,
  body     TEXT NOT NULL CHECK (json_valid(body)),
  kind     TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.kind'),
  subject  TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.subject'),
  at       TEXT NOT NULL GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', body ->> '$.at'))
) STRICT;
CREATE INDEX event_subject ON event (subject);

CREATE TRIGGER run_no_update BEFORE UPDATE ON run
BEGIN SELECT RAISE (ABORT, 'runs are append-only'); END;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run
BEGIN SELECT RAISE (ABORT, 'runs are append-only'); END;
CREATE TRIGGER prediction_no_update BEFORE UPDATE ON prediction
BEGIN SELECT RAISE (ABORT, 'predictions are append-only'); END;
CREATE TRIGGER prediction_no_delete BEFORE DELETE ON prediction
BEGIN SELECT RAISE (ABORT, 'predictions are append-only'); END;
CREATE TRIGGER experiment_no_update BEFORE UPDATE ON experiment
BEGIN SELECT RAISE (ABORT, 'experiments are append-only'); END;
CREATE TRIGGER experiment_no_delete BEFORE DELETE ON experiment
BEGIN SELECT RAISE (ABORT, 'experiments are append-only'); END;
CREATE TRIGGER event_no_update BEFORE UPDATE ON event
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
