import type { AdapterPayload } from 'oidc-provider'
import type { OAuthRecord } from '../../../store/people/oauth-records.ts'
import type { Sealer } from '../sealer.ts'

// For code that reads records without oidc-provider, which is large and loaded on first use.

/** Decrypts the payload that oidc-provider stored. */
export async function openedRecord(
  { id, kind, sealed }: OAuthRecord,
  sealer: Sealer,
): Promise<AdapterPayload> {
  const text = await sealer.open(sealed, sealedAs(kind, id))
  return JSON.parse(text.reveal()) as AdapterPayload
}

/** The purpose a record is sealed for: the payload of one record cannot be opened as another. */
export function sealedAs(kind: string, id: string): string {
  return `oauth ${kind} ${id}`
}
