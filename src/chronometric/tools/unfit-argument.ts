/**
 * An argument that the published schema refuses and that none of the error codes is about. The set of codes is closed,
 * so it is answered as the protocol itself answers wrong parameters.
 */
export class UnfitArgument extends Error {
  override readonly name = 'UnfitArgument';
}
