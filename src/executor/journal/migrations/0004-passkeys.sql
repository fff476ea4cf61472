-- An approver may be a passkey: `public_key` is then its id, and `signature` is empty, for a key always vouched for it.
-- The credential as canonical JSON; none for a key.
ALTER TABLE approvers ADD COLUMN passkey TEXT;

-- How often the authenticator said that it had signed, the last time that an answer of it counted.
ALTER TABLE approvers ADD COLUMN sign_count INTEGER NOT NULL DEFAULT 0;
