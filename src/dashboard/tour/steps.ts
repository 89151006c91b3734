/** What the tour shows: a page and the question that it answers. */
export interface TourStep {
  readonly title: string
  readonly path: string
  readonly question: string
  readonly answer: string
}

export const TOUR_STEPS: readonly TourStep[] = [
  {
    title: 'Overview',
    path: '/dashboard',
    question: 'Which clients come, and what is done with them?',
    answer: 'Requests by verdict, beside the time before. Each number leads to its requests.',
  },
  {
    title: 'Traffic',
    path: '/dashboard/traffic',
    question: 'What happened to this request, and why?',
    answer:
      'Each recorded request with its evidence and the rule that decided. Find one by the id on an error page.',
  },
  {
    title: 'Agents',
    path: '/dashboard/agents',
    question: 'Which agents come, and are they what they claim to be?',
    answer: 'The purpose of each, how it can be verified, its requests and its fingerprints.',
  },
  {
    title: 'Policy',
    path: '/dashboard/policy',
    question: 'What may each of them do?',
    answer: 'Rules in words, with what they decided. You see the effect of a change before you apply it.',
  },
]
