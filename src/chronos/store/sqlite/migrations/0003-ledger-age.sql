-- Serves pruning the ledger, oldest first.
CREATE INDEX fire_attempts_by_age ON fire_attempts (finished_at);
