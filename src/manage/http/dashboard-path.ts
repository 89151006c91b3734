/** Where the dashboard's pages are. */
export const DASHBOARD_PATH = '/dashboard/'
