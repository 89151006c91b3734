import type { ComponentChildren } from 'preact'

/** Names with values; `null` and `false` are left out. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, what: ComponentChildren])[]
}) {
  return (
    <dl class="facts">
      {of
        .filter(([, what]) => what !== null && what !== undefined && what !== '' && what !== false)
        .map(([name, what]) => (
          <>
            <dt>{name}</dt>
            <dd>{what}</dd>
          </>
        ))}
    </dl>
  )
}

/** A link from external data: only http and https URLs become links. */
export function Outside({ url }: { readonly url: string | null }) {
  if (url === null) return null
  if (!/^https?:\/\//i.test(url)) return <>{url}</>
  return (
    <a href={url} rel="noopener noreferrer" target="_blank">
      {url}
    </a>
  )
}
