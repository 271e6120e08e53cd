import { z } from 'zod';

/** A local account of Argo CD. */
export interface ArgoAccount {
  readonly isEnabled: boolean;
  readonly capabilities: ReadonlySet<string>;
  /** When its password was last changed; sessions from before do not count. */
  readonly passwordChanged: Date | undefined;
  /** Identifiers of its API tokens. */
  readonly tokens: ReadonlySet<string>;
}

const tokenList = z.array(z.object({ id: z.string() })).max(10_000);

/**
 * The account of this name as `argocd-cm` and `argocd-secret` have it, by Argo CD's rules (`util/settings/accounts.go`): `admin`
 * may log in unless `admin.enabled` says otherwise; the others have `accounts.<name>` with their capabilities.
 * Undefined when there is none, or when a value cannot be read.
 */
export function argoAccount(
  name: string,
  settings: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): ArgoAccount | undefined {
  // Argo CD ignores names with a dot. `__proto__` and the like have no own entry.
  if (name === '' || name.includes('.')) {
    return undefined;
  }
  const isAdmin = name === 'admin';
  const prefix = isAdmin ? 'admin' : `accounts.${name}`;
  const own = (data: Readonly<Record<string, string>>, key: string) =>
    Object.hasOwn(data, key) ? data[key] : undefined;
  const listed = isAdmin ? 'login' : own(settings, prefix);
  const enabled = parsedBool(own(settings, `${prefix}.enabled`) ?? 'true');
  if (listed === undefined || enabled === undefined) {
    return undefined;
  }
  const changed = own(secrets, `${prefix}.passwordMtime`);
  const passwordChanged = changed === undefined ? undefined : new Date(changed);
  if (passwordChanged !== undefined && Number.isNaN(passwordChanged.getTime())) {
    return undefined;
  }
  return {
    isEnabled: enabled,
    capabilities: new Set(listed.split(',').map((capability) => capability.trim())),
    passwordChanged,
    tokens: tokensIn(own(secrets, `${prefix}.tokens`) ?? ''),
  };
}

/**
 * Whether Argo CD has, or had, a local account of this name, also one that is disabled: its policy may still name it. `admin` is one
 * always.
 */
export function isLocalAccount(
  name: string,
  {
    settings,
    secrets,
  }: { readonly settings: Readonly<Record<string, string>>; readonly secrets: Readonly<Record<string, string>> },
): boolean {
  const key = `accounts.${name}`;
  const isOf = (each: string) => each === key || each.startsWith(`${key}.`);
  return name === 'admin' || Object.keys(settings).some(isOf) || Object.keys(secrets).some(isOf);
}

function tokensIn(text: string): ReadonlySet<string> {
  try {
    return new Set(tokenList.parse(JSON.parse(text)).map(({ id }) => id));
  } catch {
    return new Set();
  }
}

/** Go's `strconv.ParseBool`. */
function parsedBool(text: string): boolean | undefined {
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) {
    return true;
  }
  return /^(0|f|F|FALSE|false|False)$/.test(text) ? false : undefined;
}
