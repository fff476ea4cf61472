/** Every folder of the system, and the most critical files. The release half opens every file as well. */
import { testTrespassing } from './trespass.ts';

testTrespassing('interesting', 60_000);
