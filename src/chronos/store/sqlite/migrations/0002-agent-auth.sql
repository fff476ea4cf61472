-- Challenges that wait for their answer.
CREATE TABLE auth_nonces (
  nonce      TEXT    PRIMARY KEY,
  did        TEXT    NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX auth_nonces_expiry ON auth_nonces (expires_at);

-- The full public keys that are, or once were, accepted for an owner.
CREATE TABLE agent_keys (
  owner       TEXT    NOT NULL,
  public_key  TEXT    NOT NULL,
  label       TEXT    NOT NULL,
  source      TEXT    NOT NULL CHECK (source IN ('tofu', 'enrolled')),
  enrolled_at INTEGER NOT NULL,
  revoked_at  INTEGER,
  PRIMARY KEY (owner, public_key)
) STRICT, WITHOUT ROWID;
