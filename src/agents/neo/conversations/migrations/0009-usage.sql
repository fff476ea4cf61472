-- What the models of a turn used, as JSON: `{input_tokens, output_tokens, cost_usd?, incomplete?}`. NULL: not known.
ALTER TABLE turns ADD COLUMN usage TEXT;
ALTER TABLE receipts ADD COLUMN usage TEXT;
-- Of the turn up to this step, so that a turn that runs again goes on counting from here.
ALTER TABLE turn_steps ADD COLUMN usage TEXT;
