/** `npm run receipt-vectors`: writes the vectors anew; the same bytes each time. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allVectors, linesOf } from './vectors.ts';

for (const [name, vectors] of Object.entries(allVectors())) {
  writeFileSync(join(import.meta.dirname, name), linesOf(vectors));
}
