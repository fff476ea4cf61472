/** How secrets are called, referred to and hidden. */

/** What stands for a secret in a view, and is therefore refused as a value. */
export const HIDDEN = '[redacted]';

const SECRET_NAME = /TOKEN|SECRET|KEY|PASS|_PWD|CREDENTIAL|AUTH/i;

/** Whether a variable or a flag of this name is treated as a secret: taken out of output that is quoted. */
export function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

const REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** The variable of the router that a value of a machine's environment refers to: `${NAME}` as a whole, or nothing. */
export function referenceOf(value: string): string | undefined {
  return REFERENCE.exec(value)?.[1];
}
