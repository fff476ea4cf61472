-- A denial has a status of its own; what ended with one before gets it, too.
UPDATE intents
SET status = 'denied'
WHERE status = 'failed'
  AND EXISTS (
    SELECT 1
    FROM envelopes
    WHERE envelopes.intent_id = intents.id
      -- A row that somebody changed is found out when its intent is read; here it must not stop the start.
      AND CASE
        WHEN json_valid(envelopes.envelope) THEN json_extract(envelopes.envelope, '$.kind') = 'intent.failed'
          AND json_extract(envelopes.envelope, '$.body.code') IN ('denied', 'denied_by_policy')
        ELSE 0
      END
  );
