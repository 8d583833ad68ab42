/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The code of a task, which task_program.py copies.  It uses no stack, because tasks that share
 * memory would share it too.  %r12 is the mailbox:
 *   0 kind    8 number    16 to 56 six arguments    64 result
 * Arguments of a race: number of steps, number of passes, address of the steps, address of the
 * gate.  The gate counts the tasks that have not arrived yet.  A step has STEP bytes:
 *   0 number    8 to 48 six arguments    56 four pairs (count, value)    120 count of other values
 */

	.section .note.GNU-stack, "", @progbits

#ifdef __x86_64__

#include <asm/unistd_64.h>

/* As in task_program.py and tasks.py. */
#define MAILBOXES 0x70000000
#define MAILBOX_SHIFT 14
#define COUNT 16
#define MAILBOXES_FD 900
#define CALL64 1
#define CALL32 2
#define CLONE 3
#define RACE 4
#define TALLIED 4
#define STEP 128

/* include/uapi/linux/futex.h */
#define FUTEX_WAKE 1

	.text
	.globl task_code, task_program, task_code_end

/* long task_code(flags, mailbox): clone(2).  The parent returns, the child serves its mailbox. */
task_code:
	mov	%rsi, %r9
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	xor	%r8d, %r8d
	mov	$__NR_clone, %eax
	syscall
	test	%rax, %rax
	jz	.Lborn
	ret
.Lborn:
	mov	%r9, %r12
	jmp	.Lserve

/* Entry point of the program: argc is the number of the mailbox. */
task_program:
	mov	(%rsp), %rbx
	mov	$__NR_mmap, %eax
	mov	$MAILBOXES, %edi
	mov	$(COUNT << MAILBOX_SHIFT), %esi
	mov	$3, %edx			/* PROT_READ | PROT_WRITE */
	mov	$0x11, %r10d			/* MAP_SHARED | MAP_FIXED */
	mov	$MAILBOXES_FD, %r8d
	xor	%r9d, %r9d
	syscall
	shl	$MAILBOX_SHIFT, %rbx
	lea	(%rax,%rbx), %r12
	xor	%eax, %eax			/* the result of execve */

.Lanswer:
	mov	%rax, 64(%r12)
	movl	$0, (%r12)
	mov	%r12, %rdi
	mov	$FUTEX_WAKE, %esi
	mov	$1, %edx
	mov	$__NR_futex, %eax
	syscall

.Lserve:
	mov	(%r12), %eax
	cmp	$CALL64, %eax
	je	.Lcall64
	cmp	$CALL32, %eax
	je	.Lcall32
	cmp	$CLONE, %eax
	je	.Lclone
	cmp	$RACE, %eax
	je	.Lrace
	mov	%r12, %rdi
	xor	%esi, %esi			/* FUTEX_WAIT */
	mov	%eax, %edx
	xor	%r10d, %r10d
	mov	$__NR_futex, %eax
	syscall
	jmp	.Lserve

.Lcall32:
	mov	8(%r12), %eax
	mov	16(%r12), %ebx
	mov	24(%r12), %ecx
	mov	32(%r12), %edx
	mov	40(%r12), %esi
	mov	48(%r12), %edi
	mov	56(%r12), %ebp
	int	$0x80
	cltq
	jmp	.Lanswer

.Lcall64:
	mov	8(%r12), %rax
	mov	16(%r12), %rdi
	mov	24(%r12), %rsi
	mov	32(%r12), %rdx
	mov	40(%r12), %r10
	mov	48(%r12), %r8
	mov	56(%r12), %r9
	syscall
	jmp	.Lanswer

/* Arguments: flags, mailbox of the child. */
.Lclone:
	mov	16(%r12), %rdi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	xor	%r8d, %r8d
	mov	$__NR_clone, %eax
	syscall
	test	%rax, %rax
	jnz	.Lanswer
	mov	24(%r12), %r12
	jmp	.Lserve

.Lrace:
	mov	16(%r12), %r13
	mov	32(%r12), %r14
	lock decl (%r14)
.Lgate:
	pause
	cmpl	$0, (%r14)
	jg	.Lgate
.Lpass:
	mov	24(%r12), %rbx
	mov	8(%r12), %r15
.Lstep:
	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
	test	%rax, %rax
	js	.Ladd
	syscall
	test	%rax, %rax
	jnz	.Lresult
	cmpq	$__NR_clone, (%rbx)		/* the child finds its mailbox in the step */
	jne	.Lresult
	mov	24(%rbx), %r12
	jmp	.Lserve
.Ladd:
	lock add %esi, (%rdi)
	dec	%rdx
	jnz	.Ladd
	xor	%eax, %eax
.Lresult:
	lea	56(%rbx), %r14
	mov	$TALLIED, %ecx
.Lsearch:
	cmpq	$0, (%r14)
	je	.Lnew
	cmp	%rax, 8(%r14)
	je	.Lcount
	add	$16, %r14
	dec	%ecx
	jnz	.Lsearch
	jmp	.Lcount
.Lnew:
	mov	%rax, 8(%r14)
.Lcount:
	incq	(%r14)
	sub	$-STEP, %rbx
	dec	%r15
	jnz	.Lstep
	dec	%r13
	jnz	.Lpass
	xor	%eax, %eax
	jmp	.Lanswer
task_code_end:

#endif
