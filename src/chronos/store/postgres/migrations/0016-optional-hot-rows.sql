-- Advice to PostgreSQL: a page of progress has room for the next version of its rows, and what died is cleared away early.
ALTER TABLE progress SET (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE definitions SET (fillfactor = 90);
