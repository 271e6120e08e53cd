export { loopbackAddress } from './addresses.ts';
export type { RestartBackoff } from './container-life.ts';
export {
  argoCdImage,
  builtImage,
  type Image,
  type ImageFile,
  type ImageRecipe,
  type ImageTable,
  type ImageUse,
  pauseImage,
  projectImage,
  redisImage,
  shellImage,
  sourceImage,
  standardImages,
  type ToolPath,
  webImage,
} from './images.ts';
export { kubeletPort } from './kubelet-server.ts';
export { Node, type NodeOptions, startNode } from './node.ts';
export { limitFlags, podmanFlags } from './podman.ts';
export type { ServiceEndpoint } from './services.ts';
export { type ContainerStatus, type KubeletPod, kubeletPods } from './types.ts';
