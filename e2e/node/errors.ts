/**
 * A container cannot be created as its pod asks. `reason` is what a kubelet puts into the container's waiting state
 * (`CreateContainerConfigError`, `ErrImagePull`, `RunContainerError`, …).
 */
export class ContainerError extends Error {
  override readonly name = 'ContainerError';
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A volume cannot be set up; the pod stays in ContainerCreating and the node tries again when something changes. */
export class VolumeError extends Error {
  override readonly name = 'VolumeError';
}
