-- A claim names its holder, a running process, and lasts as long as that one lives: a claim has no end of its own, and is not renewed.
-- Replicas of the version before this one cannot go on: their statements name a column that is gone.
--
-- A replica proves every half second that it lives. It is given up when it has not done so for two seconds; the mark is final, and is
-- what decides between a late proof and the others.
CREATE TABLE replicas (
  -- Random, new with every start, and new after the replica was given up: two replicas never have the same, whatever their names.
  holder      BIGINT PRIMARY KEY,
  -- Host and process, for people.
  name        TEXT   NOT NULL,
  -- By this clock, as all instants here.
  alive_until BIGINT NOT NULL,
  -- Nothing that it claimed is due after this. It never decreases, not even when the clock is set back.
  claims_to   BIGINT NOT NULL,
  -- NULL: it lives.
  given_up_at BIGINT
);

ALTER TABLE occurrences RENAME COLUMN lease_until TO holder;
-- Holder 0 is no process: its claims are ended.
UPDATE occurrences SET holder = 0 WHERE holder IS NOT NULL;
