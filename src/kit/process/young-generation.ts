/**
 * Limits V8's young generation. V8 doubles each of its two halves, from 1 MiB up to 64 MiB, whenever enough objects
 * survive, such as those of current wakes. It returns the memory only after a full collection.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const MIB = 1024 * 1024;

/** The size of one half, in bytes. */
export function youngGenerationBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return space === undefined ? 0 : space.space_used_size + space.space_available_size;
}

/**
 * Limits the growth of each half of the young generation from now on.
 *
 * V8 reads its flag for the maximum size only before any JavaScript runs, but it reads the growth factor at each
 * growth. Call this after the modules of a start are loaded. While a flag is set, V8 rejects compiled code that was
 * made without it: that of Node's own modules, and that in the compile cache.
 *
 * @param mostMib the limit, MiB, a power of two
 */
export function boundYoungGeneration(mostMib: number): void {
  // V8's default factor, which need not be set.
  let factor = 2;
  const allow = () => {
    const next = 2 * youngGenerationBytes() <= mostMib * MIB ? 2 : 1;
    if (next === factor) return;
    factor = next;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  // Only a collection changes the size: growth must be checked again after it, and a full one may shrink it.
  new PerformanceObserver(allow).observe({ entryTypes: ['gc'] });
  allow();
}
