import { useRoute } from 'preact-iso'
import { useEffect, useMemo } from 'preact/hooks'
import { type Block, parseMarkdown, plainText } from '../../../shared/markdown.ts'
import { Markdown } from './markdown.tsx'
import { Page } from '../../parts/page.tsx'
import { Answered, ProblemNote, Waiting } from '../../parts/states.tsx'
import { startTour } from '../../shell/tour-start.ts'
import { SearchField, SearchResults, useManualQuery } from './search.tsx'
import { useTopic, useTopics } from './use-guide.ts'

/** The list of the manual's pages. */
export function Help() {
  const used = useTopics()
  const query = useManualQuery()
  const isSearching = query.written.trim() !== ''
  return (
    <Page
      title="Help"
      about="The manual. The command line shows the same pages: gatehouse help TOPIC."
      actions={
        <button type="button" onClick={startTour}>
          Start the tour
        </button>
      }
    >
      <SearchField {...query} />
      {isSearching && <SearchResults query={query.written} />}
      {!isSearching && (
        <Answered used={used}>
          {(topics) => (
            <ul class="plain grid">
              {topics.map(({ topic, title, about }) => (
                <li key={topic} class="card">
                  <h2>
                    <a href={`/dashboard/help/${topic}`}>{title}</a>
                  </h2>
                  <p>{about}</p>
                </li>
              ))}
            </ul>
          )}
        </Answered>
      )}
    </Page>
  )
}

/** One page of the manual. */
export function HelpTopic() {
  const { topic } = useRoute().params as { readonly topic: string }
  return <TopicPage key={topic} topic={topic} />
}

function TopicPage({ topic }: { readonly topic: string }) {
  const { answer: text, problem, again } = useTopic(topic)
  const blocks = useMemo(() => parseMarkdown(text ?? ''), [text])
  useEffect(() => {
    for (const block of blocks)
      if (block.kind === 'heading' && `#${encodeURI(block.anchor)}` === location.hash)
        document.getElementById(block.anchor)?.scrollIntoView()
  }, [blocks])
  const [first, ...rest] = blocks
  const hasTitle = first?.kind === 'heading' && first.level === 1
  return (
    <Page title={hasTitle ? plainText(first.spans) : topic} about={<a href="/dashboard/help">All topics</a>}>
      {problem !== null && <ProblemNote problem={problem} again={again} />}
      {text === null && problem === null && <Waiting />}
      <div class="manual">
        <Contents topic={topic} blocks={rest} />
        <article class="card">
          <Markdown blocks={hasTitle ? rest : blocks} />
        </article>
      </div>
    </Page>
  )
}

/** The topics, and the sections of this one. */
function Contents({ topic, blocks }: { readonly topic: string; readonly blocks: readonly Block[] }) {
  const { answer: topics } = useTopics()
  const sections = blocks.flatMap((block) =>
    block.kind === 'heading' && block.level === 2
      ? [
          <li key={block.anchor}>
            <a href={`#${block.anchor}`}>{plainText(block.spans)}</a>
          </li>,
        ]
      : [],
  )
  return (
    <nav aria-label="Topics">
      <ul class="plain">
        {(topics ?? []).map((each) => (
          <li key={each.topic}>
            <a
              href={`/dashboard/help/${each.topic}`}
              aria-current={each.topic === topic ? 'page' : undefined}
            >
              {each.title}
            </a>
            {each.topic === topic && sections.length > 0 && <ul>{sections}</ul>}
          </li>
        ))}
      </ul>
    </nav>
  )
}
