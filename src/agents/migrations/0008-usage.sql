-- What the models of a turn used, as JSON: `{input_tokens, output_tokens, cost_usd?, incomplete?}`. NULL: not known.
ALTER TABLE turns ADD COLUMN usage TEXT;
ALTER TABLE receipts ADD COLUMN usage TEXT;
-- The agent's own count of its whole conversation after its last turn, where it reports only that.
ALTER TABLE conversations ADD COLUMN usage TEXT;
