-- Advice to PostgreSQL itself, as in 0003: keys are compared byte by byte.
ALTER TABLE fire_receipts
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN alarm_id TYPE TEXT COLLATE "C",
  ALTER COLUMN fire_id TYPE TEXT COLLATE "C", ALTER COLUMN stage TYPE TEXT COLLATE "C";
