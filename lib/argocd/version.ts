/**
 * Major and minor version of Argo CD from the tag of its image, for example `quay.io/argoproj/argocd:v3.2.6`; undefined when
 * the tag is no version.
 */
export function versionOfImage(image: string): [major: number, minor: number] | undefined {
  const [, major, minor] = /:v?(\d{1,4})\.(\d{1,4})(?:[.@+-][^/:]*(?::[0-9a-f]+)?)?$/.exec(image) ?? [];
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)];
}
