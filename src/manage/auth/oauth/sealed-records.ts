import type { AdapterPayload } from 'oidc-provider'
import type { OAuthRecord } from '../../../store/people/oauth-records.ts'
import type { Sealer } from '../sealer.ts'

// For who looks at records without oidc-provider, which is large and loaded by who uses it.

/** What oidc-provider has written down. */
export async function openedRecord(
  { id, kind, sealed }: OAuthRecord,
  sealer: Sealer,
): Promise<AdapterPayload> {
  const text = await sealer.open(sealed, sealedAs(kind, id))
  return JSON.parse(text.reveal()) as AdapterPayload
}

/** What is sealed of one record is nothing in the place of another. */
export function sealedAs(kind: string, id: string): string {
  return `oauth ${kind} ${id}`
}
