/** Every folder and every file of the system. */
import { testTrespassing } from '../sandbox/trespass.ts';

testTrespassing('all', 240_000);
