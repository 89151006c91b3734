import type { ApiContext } from './context.ts'

/**
 * The id for a name in a filter. Looks in the signatures in use first, as a policy does, then in the
 * catalogue. An unknown name is returned unchanged, and matches nothing.
 */
export async function softwareIdOf(
  name: string,
  { snapshot, store }: Pick<ApiContext, 'snapshot' | 'store'>,
): Promise<string> {
  const found = snapshot()?.knowledge?.names?.find(name) ?? (await store.catalogue.softwareNamed(name))
  return found?.id ?? name
}

export async function softwareIdsOf(
  names: readonly string[],
  management: Pick<ApiContext, 'snapshot' | 'store'>,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (const name of names) ids.push(await softwareIdOf(name, management))
  return [...new Set(ids)]
}

/** The agent or tool that a path names. */
export function softwareInPath(
  { params }: { readonly params: { readonly agent_id: string } },
  { store }: Pick<ApiContext, 'store'>,
) {
  return store.catalogue.softwareNamed(params.agent_id)
}
