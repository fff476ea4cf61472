/** Whether a person makes a request, and who. */
import { readPersonProof, type Signed } from '../../kit/identity/person-proof.ts';
import { setBySchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';

/**
 * @param proof the header; `undefined`: the agent itself
 * @param operator the operator's token and the time; without a token nobody can prove to be a person
 * @throws ReveilleError `forbidden` when the proof does not hold: the words would otherwise reach the agent as its own
 */
export function personOf(
  proof: string | undefined,
  signed: Signed,
  { token, now }: { token: string | undefined; now: number },
): string | undefined {
  if (proof === undefined) return undefined;
  const name = token === undefined ? undefined : readPersonProof(proof, signed, { secret: token, now });
  const setBy = setBySchema.safeParse({ kind: 'person', name });
  if (setBy.success) return setBy.data.name;
  throw new ReveilleError(
    'forbidden',
    'X-Chronos-Person must prove, with CHRONOS_ADMIN_TOKEN and within five minutes, that a person makes this very request; leave it out to set an alarm as the agent',
  );
}
