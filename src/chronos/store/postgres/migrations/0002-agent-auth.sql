-- Challenges that wait for their answer.
CREATE TABLE auth_nonces (
  nonce      TEXT   PRIMARY KEY,
  did        TEXT   NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX auth_nonces_expiry ON auth_nonces (expires_at ASC);

-- The full public keys that are, or once were, accepted for an owner.
CREATE TABLE agent_keys (
  owner       TEXT    NOT NULL,
  public_key  TEXT    NOT NULL,
  label       TEXT    NOT NULL,
  source      TEXT    NOT NULL CHECK (source IN ('tofu', 'enrolled')),
  -- It came by trust on first use. Stays so when an operator vouches for it: of two first keys that arrive together at two
  -- replicas, this lets one in.
  pinned      BOOLEAN NOT NULL,
  enrolled_at BIGINT  NOT NULL,
  revoked_at  BIGINT,
  PRIMARY KEY (owner, public_key)
);

CREATE UNIQUE INDEX agent_keys_pinned ON agent_keys (owner) WHERE pinned;
