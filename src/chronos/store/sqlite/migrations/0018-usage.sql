-- Of turn_finished: what the models of the turn used, as JSON. NULL: not known.
ALTER TABLE fire_receipts ADD COLUMN usage TEXT;
