import { describe, expect, it } from 'vitest';
import { parseImageName } from './image-name.ts';

describe('parseImageName', () => {
  it.each([
    ['redis', 'docker.io/library/redis', 'latest'],
    ['nginx:1.27', 'docker.io/library/nginx', '1.27'],
    ['bitnami/redis:7', 'docker.io/bitnami/redis', '7'],
    ['quay.io/argoproj/argocd:v3.2.6', 'quay.io/argoproj/argocd', 'v3.2.6'],
    ['localhost:5000/a/b', 'localhost:5000/a/b', 'latest'],
    ['registry:5000/a', 'registry:5000/a', 'latest'],
    [`quay.io/x/y:1@sha256:${'0'.repeat(64)}`, 'quay.io/x/y', '1'],
    [`quay.io/x/y@sha256:${'0'.repeat(64)}`, 'quay.io/x/y', 'latest'],
  ])('completes %s', (reference, repository, tag) => {
    expect(parseImageName(reference)).toEqual({ repository, tag });
  });

  it.each(['', 'Upper', 'a b', 'x:', 'x:-1', '/x'])('refuses %j as a runtime does', (reference) => {
    expect(() => parseImageName(reference)).toThrow(expect.objectContaining({ reason: 'InvalidImageName' }));
  });
});
