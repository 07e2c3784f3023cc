;; What a user does in Emacs, without a screen: types an error, asks about a name, goes to its definition. Writes the answers as
;; JSON to the file that the variable RESULT names; FILE is the one that is edited.  -*- lexical-binding: t -*-
(require 'json)

(defun wait-for (what condition)
  (let ((until (+ (float-time) 100)) (found nil))
    (while (and (not (setq found (funcall condition))) (< (float-time) until))
      (accept-process-output nil 0.05))
    (unless found
      (message "no %s" what)
      (kill-emacs 1))
    found))

(defun ask (method text)
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0))
  (jsonrpc-request (eglot-current-server) method (eglot--TextDocumentPositionParams)))

(defun diagnose ()
  (sort (mapcar (lambda (one)
                  (format "%s: %s" (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-text one)))
                (seq-filter (lambda (one) (eq (flymake-diagnostic-type one) 'eglot-error)) (flymake-diagnostics)))
        #'string<))

(find-file (getenv "FILE"))
;; The command loop, which Emacs does not have here, would do it.
(run-hooks 'post-command-hook)
(wait-for "server" #'eglot-current-server)
(let* ((hover (ask :textDocument/hover "notes.one`"))
       (definition (ask :textDocument/definition "notes.one`"))
       (table (ask :textDocument/definition "notes order by")))
  (goto-char (point-max))
  (insert "const n: number = HttpError;\nawait notes.all`select nowhere from notes`;\n")
  (eglot--signal-textDocument/didChange)
  ;; Those about statements come after the others; a check that begins has none.
  (let ((messages (wait-for "messages" (lambda ()
                                         (let ((found (diagnose)))
                                           (and (seq-some (lambda (one) (string-match-p "no such column" one)) found) found))))))
    (with-temp-file (getenv "RESULT")
      (insert (json-encode
               (list :hover hover :definition definition :table table :messages (vconcat messages)))))))
(kill-emacs 0)
