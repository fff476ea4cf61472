/** `npm run --silent imports`: prints the imports between the parts of `src`, by layer, as a Mermaid flowchart. */
import { join } from 'node:path';
import { importGraph, mermaidOf } from '../test/architecture/import-graph.ts';

process.stdout.write(mermaidOf(importGraph(join(import.meta.dirname, '..'), ['src'])));
