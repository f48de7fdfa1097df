/** The page in a frame of another site, at `/embed/{id}`: one exploration to read, and a link to where it can be changed. */

export function isEmbedded(): boolean {
  return location.pathname.startsWith("/embed/");
}

/** Why nothing is explored from there: what surrounds the frame may lure its reader into a click. */
export const ONLY_TO_READ = "Open this exploration in Fusionscope to change it or to run it again.";
