import { Component, type ReactNode } from 'react';

type State = { problem?: string };

/** Shows an error of the page, with a way on, in place of an empty page. Answers that were not sent were not given. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = {};

  static getDerivedStateFromError(error: unknown): State {
    return { problem: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    if (this.state.problem === undefined) return this.props.children;
    return (
      <main className="conversation loading">
        <div className="banner failed" role="alert">
          <p>This page has stopped because of an error: {this.state.problem}</p>
          <p>An answer that was not sent is not given. Calls without an answer still wait at the server.</p>
          <button type="button" onClick={() => window.location.reload()}>
            Reload the page
          </button>
        </div>
      </main>
    );
  }
}
