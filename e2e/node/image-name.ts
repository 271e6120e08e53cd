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
  const parsed =
    /^(?<path>[a-z0-9]+(?:[._:-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*?)(?::(?<tag>[\w][\w.-]{0,127}))?(?:@sha256:[0-9a-f]{64})?$/.exec(
      reference,
    );
  const path = parsed?.groups?.path;
  if (!path) {
    throw new ContainerError(
      'InvalidImageName',
      `Failed to apply default image tag "${reference}": couldn't parse image name "${reference}": invalid reference format`,
    );
  }
  const [first = '', ...rest] = path.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const repository = hasRegistry ? path : rest.length > 0 ? `docker.io/${path}` : `docker.io/library/${path}`;
  return { repository, tag: parsed?.groups?.tag ?? 'latest' };
}
