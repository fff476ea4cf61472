-- What the alarm says of its turn, as JSON: `{model?, tools?, deliver?}`. NULL for a plain alarm.
ALTER TABLE turns ADD COLUMN terms TEXT;
