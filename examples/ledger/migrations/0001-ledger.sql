-- Amounts are whole cents; instants are milliseconds since the epoch, UTC.

CREATE TABLE accounts (
  account    TEXT    NOT NULL PRIMARY KEY,
  currency   TEXT    NOT NULL,
  -- Where the money of the others came from; it takes no part in transfers and is the only one below zero.
  is_origin  INTEGER NOT NULL DEFAULT 0 CHECK (is_origin IN (0, 1))
) STRICT;

CREATE TABLE transfers (
  transfer_id     TEXT    NOT NULL PRIMARY KEY,
  -- NULL for what was there at the beginning.
  idempotency_key TEXT    UNIQUE,
  source          TEXT    NOT NULL REFERENCES accounts (account),
  target          TEXT    NOT NULL REFERENCES accounts (account),
  cents           INTEGER NOT NULL CHECK (cents > 0),
  currency        TEXT    NOT NULL,
  memo            TEXT,
  made_at         INTEGER NOT NULL,
  CHECK (source <> target)
) STRICT;

-- Two for each transfer, which add up to nothing. What an account holds is the sum of its entries and stands nowhere else.
CREATE TABLE entries (
  transfer_id TEXT    NOT NULL REFERENCES transfers (transfer_id),
  account     TEXT    NOT NULL REFERENCES accounts (account),
  cents       INTEGER NOT NULL CHECK (cents <> 0),
  PRIMARY KEY (transfer_id, account)
) STRICT, WITHOUT ROWID;

CREATE INDEX entries_of_account ON entries (account, cents);

-- Keys that somebody has asked about before they were used: they never will be.
CREATE TABLE closed_keys (
  idempotency_key TEXT    NOT NULL PRIMARY KEY,
  closed_at       INTEGER NOT NULL
) STRICT;

-- Play money, to begin with.
INSERT INTO accounts (account, currency, is_origin) VALUES
  ('opening', 'EUR', 1),
  ('alice',   'EUR', 0),
  ('bob',     'EUR', 0),
  ('rent',    'EUR', 0);

INSERT INTO transfers (transfer_id, source, target, cents, currency, memo, made_at) VALUES
  ('opening-alice', 'opening', 'alice', 500000, 'EUR', 'play money', 0),
  ('opening-bob',   'opening', 'bob',   100000, 'EUR', 'play money', 0);

INSERT INTO entries (transfer_id, account, cents) VALUES
  ('opening-alice', 'opening', -500000),
  ('opening-alice', 'alice',    500000),
  ('opening-bob',   'opening', -100000),
  ('opening-bob',   'bob',      100000);
