/** `npm run schemas:check`: fails if the tools of Chronometric have a change that v0.1.x does not allow. */
import { baseline, breaksSince, toolSchemas } from './published.ts';

const breaks = breaksSince(baseline(), toolSchemas());
for (const problem of breaks) process.stderr.write(`${problem}\n`);
if (breaks.length > 0) {
  process.stderr.write(
    'Only additions are allowed within v0.1.x; anything else is a new major version under a new $id.\n',
  );
  process.exitCode = 1;
} else process.stdout.write('chronometric has only grown since v0.1.0\n');
