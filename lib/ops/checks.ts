/** A check for `intFlag`: the value must be within these bounds. */
export function between(low: number, high: number): (value: number) => string | undefined {
  return (value) => (value < low || value > high ? `must be between ${low} and ${high}` : undefined);
}

/** A check for `stringFlag`: the value must be one of these. The empty text, where it is allowed, is not mentioned. */
export function oneOf(...values: string[]): (value: string) => string | undefined {
  return (value) => (values.includes(value) ? undefined : `must be one of: ${values.filter(Boolean).join(', ')}`);
}

/** A check for `intFlag` and `durationFlag`: the value must be above zero. */
export function positive(value: number): string | undefined {
  return value > 0 ? undefined : 'must be greater than 0';
}

/** A check for the port of an optional server. Ports above 32767 are not accepted, as in argocd-agent. */
export function optionalPort(port: number): string | undefined {
  return port > 32767 ? 'must be between 1 and 32767, or 0 for none' : undefined;
}

/** A check for `stringFlag`: the value must be an http or https URL without credentials, or empty. */
export function httpUrl(value: string): string | undefined {
  const { protocol, username, password } = URL.parse(value) ?? {};
  const isGood = (protocol === 'http:' || protocol === 'https:') && !username && !password;
  return value === '' || isGood ? undefined : 'must be an http or https URL without user and password';
}

/** A check for `intFlag` and `durationFlag`: the value must not be below zero. */
export function notNegative(value: number): string | undefined {
  return value < 0 ? 'must not be negative' : undefined;
}
