import { ContainerError } from './errors.ts';

/** A parsed image reference. */
export interface ImageName {
  /** With the registry, as a container runtime completes it: `redis` is `docker.io/library/redis`. */
  repository: string;
  tag: string;
}

/**
 * Parses an image reference.
 *
 * @throws ContainerError `InvalidImageName`
 */
export function parseImageName(reference: string): ImageName {
  const plain = reference.replace(/@sha256:[0-9a-f]{64}$/, '');
  const colon = plain.indexOf(':', plain.lastIndexOf('/') + 1);
  const path = colon < 0 ? plain : plain.slice(0, colon);
  const tag = colon < 0 ? 'latest' : plain.slice(colon + 1);
  const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
  const isValid = new RegExp(`^(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?${component}(?:/${component})*$`).test(path);
  if (!isValid || !/^\w[\w.-]{0,127}$/.test(tag)) {
    throw new ContainerError(
      'InvalidImageName',
      `Failed to apply default image tag "${reference}": couldn't parse image name "${reference}": invalid reference format`,
    );
  }
  const [first = '', ...rest] = path.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const repository = hasRegistry ? path : rest.length > 0 ? `docker.io/${path}` : `docker.io/library/${path}`;
  return { repository, tag };
}
