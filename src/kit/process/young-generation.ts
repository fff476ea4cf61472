/**
 * Bounds V8's young generation. V8 doubles each of its two halves, from 1 MiB to 64 MiB, whenever enough objects have
 * survived, as those of wakes under way do, and gives the memory back only after a full collection.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const MIB = 1024 * 1024;

/** The size of one half, bytes. */
export function youngGenerationBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return space === undefined ? 0 : space.space_used_size + space.space_available_size;
}

/**
 * From now on each half of the young generation may grow to a bound, and no further.
 *
 * V8 reads its flag for the greatest size only before any of our code runs, but the factor of growth each time it grows.
 * To be called when the modules of a start are loaded: while a flag is set, V8 refuses the compiled code of Node's own
 * modules, and of ours in the compile cache, that was made without it.
 *
 * @param mostMib the bound, MiB, a power of two
 */
export function boundYoungGeneration(mostMib: number): void {
  // V8's own factor, which need not be set.
  let factor = 2;
  const allow = () => {
    const next = 2 * youngGenerationBytes() <= mostMib * MIB ? 2 : 1;
    if (next === factor) return;
    factor = next;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  // Only a collection changes the size: a larger one leaves less room for the next, a full one may shrink it.
  new PerformanceObserver(allow).observe({ entryTypes: ['gc'] });
  allow();
}
