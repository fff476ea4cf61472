-- Accounts in a second currency, and what one currency is worth in the other.

INSERT INTO accounts (account, currency, is_origin) VALUES
  ('alice-usd',  'USD', 0),
  ('bob-usd',    'USD', 0),
  -- The other side of every exchange. They begin with nothing, and may be below zero.
  ('market-eur', 'EUR', 1),
  ('market-usd', 'USD', 1);

-- A rate is a decimal number as text, so that all of its digits count.
CREATE TABLE rates (
  base   TEXT NOT NULL,
  quote  TEXT NOT NULL,
  rate   TEXT NOT NULL,
  PRIMARY KEY (base, quote),
  CHECK (base <> quote)
) STRICT, WITHOUT ROWID;

INSERT INTO rates (base, quote, rate) VALUES
  ('EUR', 'USD', '1.1637'),
  ('USD', 'EUR', '0.8576');

-- Two transfers without a key of their own, one in each currency: to the market, and from it.
CREATE TABLE exchanges (
  exchange_id      TEXT    NOT NULL PRIMARY KEY,
  idempotency_key  TEXT    NOT NULL UNIQUE,
  paid             TEXT    NOT NULL UNIQUE REFERENCES transfers (transfer_id),
  received         TEXT    NOT NULL UNIQUE REFERENCES transfers (transfer_id),
  rate             TEXT    NOT NULL
) STRICT;
