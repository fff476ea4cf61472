-- The columns of every agent's turns. Neo's own turns use only the first two: a turn whose attempt could not start waits.
ALTER TABLE turns ADD COLUMN waits TEXT;
ALTER TABLE turns ADD COLUMN spawn_id TEXT;
ALTER TABLE turns ADD COLUMN named INTEGER;
ALTER TABLE turns ADD COLUMN preset TEXT;
ALTER TABLE turns ADD COLUMN session TEXT;
ALTER TABLE turns ADD COLUMN handle TEXT;
ALTER TABLE turns ADD COLUMN pid INTEGER;
ALTER TABLE turns ADD COLUMN birth TEXT;

-- A start reads every unfinished turn in the order of acceptance, and keeps the times of retries in memory.
DROP INDEX turns_running;
DROP INDEX turns_parked;
CREATE INDEX turns_unfinished ON turns (seq) WHERE status IN ('queued', 'running');
