/** Whose the document at this address is: who has the key directory of an origin is that origin. */
export function signerAt(place: string): string {
  const { origin, href } = new URL(place)
  return href === `${origin}/` || href === origin + DIRECTORY ? origin : href
}

/** Where the keys of a whole origin are (draft-ietf-webbotauth-httpsig-directory). */
export const DIRECTORY = '/.well-known/http-message-signatures-directory'
