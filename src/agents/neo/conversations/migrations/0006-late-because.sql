-- Why the wake was late: the computer slept, Reveille was not running, or the machine had to start; NULL: nobody knew.
ALTER TABLE turns ADD COLUMN late_because TEXT;
