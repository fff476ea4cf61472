-- A move of a SQLite installation into this database: as long as it is not whole, nobody may ring these alarms from here. One row,
-- made with the first move.
CREATE TABLE arrivals (
  only_one BIGINT PRIMARY KEY CHECK (only_one = 1),
  -- Names the SQLite file, and the move.
  source   TEXT   NOT NULL,
  transfer TEXT   NOT NULL,
  -- arriving: being copied. arrived: in use here. abandoned: given up, the alarms are rung from the file again.
  state    TEXT   NOT NULL CHECK (state IN ('arriving', 'arrived', 'abandoned')),
  -- The process that copies: one that has been replaced by another stores nothing any more.
  holder   TEXT   NOT NULL,
  -- Grows with every batch: one that was sent ahead of a batch that failed is not stored either.
  step     BIGINT NOT NULL,
  -- How far the copy has come, as JSON: rows and last key by table.
  progress TEXT   NOT NULL,
  since    BIGINT NOT NULL
);
