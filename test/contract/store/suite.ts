/** The contract of the store port, applied to any implementation. */
import { describe } from 'node:test';
import { agentKeyContract } from './agent-keys.ts';
import { attemptsContract } from './attempts.ts';
import { boundsContract } from './bounds.ts';
import { calendarFeedContract } from './calendar-feeds.ts';
import { changesContract } from './changes.ts';
import { claimContract, orphanedClaimContract } from './claim.ts';
import { completeContract } from './complete.ts';
import { createContract } from './create.ts';
import { directContract } from './direct.ts';
import { durabilityContract } from './durability.ts';
import { eventContract } from './events.ts';
import { findContract } from './find.ts';
import { getContract, listContract } from './get-list.ts';
import { moveContract, noMoveContract } from './move.ts';
import { nextDueContract } from './next-due.ts';
import { nonceContract } from './nonces.ts';
import { ownerContract } from './owners.ts';
import { policyContract } from './policies.ts';
import { rulesContract } from './rules.ts';
import type { OpenStore } from './store-under-test.ts';
import { receiptsContract } from './turn-reports.ts';
import { updateContract } from './update.ts';

/**
 * Registers the whole contract as tests.
 *
 * @param name of the implementation
 * @param open makes a new, empty store for each test
 * @param options.moves whether alarms can move to another owner
 */
export function describeStore(name: string, open: OpenStore, { moves = true } = {}): void {
  describe(`the alarm store on ${name}`, () => {
    createContract(open);
    getContract(open);
    listContract(open);
    findContract(open);
    updateContract(open);
    claimContract(open);
    orphanedClaimContract(open);
    completeContract(open);
    directContract(open);
    nextDueContract(open);
    attemptsContract(open);
    receiptsContract(open);
    eventContract(open);
    rulesContract(open);
    changesContract(open);
    nonceContract(open);
    agentKeyContract(open);
    calendarFeedContract(open);
    ownerContract(open);
    if (moves) moveContract(open);
    else noMoveContract(open);
    boundsContract(open);
    policyContract(open);
    durabilityContract(open);
  });
}
